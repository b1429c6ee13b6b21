-- Which specs judge mutants of which room of lib/trinity: the quickest first.
return {
  most_seconds = 300, -- that a spec may take before it counts as failed
  rooms = {
    methods = { 'methods/significance', 'whole/golden', 'methods/expert', 'pase/pase', 'search/race', 'methods/agent',
      'methods/trinity_stages', 'methods/optimum', 'methods/infeasible', 'tapp/tapp', 'search/search',
      'methods/compare', 'methods/neural_methods', 'search/dist_search' },
    pase = { 'pase/pase', 'strategy/splits', 'whole/golden' },
    pipeline = { 'whole/golden', 'pipeline/pipeline_machine', 'pipeline/pipelines', 'pipeline/pipeline' },
    report = { 'report/plot', 'runs/golden_runs', 'report/report' },
    runs = { 'runs/golden_runs', 'whole/damaged', 'whole/callbacks', 'runs/run_folder',
      'report/report', 'search/seconds', 'runs/rescue', 'whole/interrupt', 'parallel/parallel_map',
      'search/dist_search', 'command/safe' },
    search = { 'search/keep', 'search/race', 'whole/golden', 'runs/golden_runs', 'whole/damaged', 'whole/callbacks',
      'search/search', 'runs/rescue', 'search/seconds', 'runs/run_folder', 'methods/compare', 'search/dist_search' },
  },
}
