-- Which specs judge mutants of which room of lib/trinity, and which C++ rooms and specs judge those of the engine:
-- the quickest first.
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
  engine = {
    base = { 'core/base', 'core/simulator', 'core/search', 'whole/errors', 'nn/tensor' },
    graph = { 'core/graph', 'core/strategy', 'core/simulator', 'core/formats', 'graph', 'strategy/mesh_laws',
      'execute' },
    cluster = { 'core/cluster', 'core/strategy', 'core/simulator', 'cluster', 'strategy', 'fidelity/collectives' },
    strategy = { 'core/strategy', 'core/simulator', 'strategy', 'plan', 'execute/execute_strategies', 'formats' },
    simulator = { 'core/simulator', 'core/strategy', 'core/search', 'strategy', 'plan', 'pipeline', 'search' },
    search = { 'core/search', 'core/selection', 'search', 'methods', 'pipeline', 'pase' },
    selection = { 'core/selection', 'core/search', 'select', 'pase' },
    features = { 'core/features', 'core/learn', 'learn', 'methods' },
    formats = { 'core/formats', 'core/whole', 'formats', 'graph', 'pipeline', 'select' },
    learn = { 'core/learn', 'core/features', 'learn', 'search', 'methods' },
  },
}
