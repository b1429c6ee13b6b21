-- Which specs judge mutants of which room of lib/trinity: the quickest first.
return {
  most_seconds = 120, -- that a spec may take before it counts as failed
  rooms = {
    methods = { 'golden', 'expert', 'optimum', 'infeasible', 'race', 'tapp', 'trinity_stages', 'search', 'compare',
      'neural_methods', 'policies', 'arguments', 'run_folder' },
    pase = { 'pase', 'splits', 'golden', 'scripts' },
    pipeline = { 'pipeline', 'pipeline_machine', 'golden', 'pipelines', 'tapp', 'scripts' },
    report = { 'report', 'scripts' },
    runs = { 'run_folder', 'seconds', 'rescue', 'report', 'interrupt', 'search', 'compare', 'dist_search', 'scripts' },
    search = { 'race', 'search', 'callbacks', 'seconds', 'golden', 'rescue', 'run_folder', 'compare', 'dist_search' },
  },
}
