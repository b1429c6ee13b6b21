-- Which specs judge mutants of which room of lib/trinity: the quickest first.
return {
  most_seconds = 300, -- that a spec may take before it counts as failed
  rooms = {
    methods = { 'golden', 'expert', 'pase', 'race', 'agent', 'trinity_stages', 'optimum', 'infeasible', 'tapp',
      'search', 'compare', 'neural_methods', 'dist_search' },
    pase = { 'pase', 'splits', 'golden' },
    pipeline = { 'golden', 'pipeline_machine', 'pipelines', 'pipeline' },
    report = { 'golden_runs', 'report' },
    runs = { 'golden_runs', 'damaged', 'callbacks', 'run_folder', 'report', 'seconds', 'rescue', 'interrupt',
      'parallel_map', 'dist_search', 'safe' },
    search = { 'race', 'golden', 'golden_runs', 'damaged', 'callbacks', 'search', 'rescue', 'seconds', 'run_folder',
      'compare', 'dist_search' },
  },
}
