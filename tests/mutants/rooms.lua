-- Which specs judge mutants of which room of lib/trinity: the quickest first.
return {
  most_seconds = 300, -- that a spec may take before it counts as failed
  rooms = {
    methods = { 'golden', 'expert', 'optimum', 'race', 'infeasible', 'tapp', 'trinity_stages', 'search', 'compare',
      'neural_methods' },
    pase = { 'pase', 'splits', 'golden' },
    pipeline = { 'pipeline', 'pipeline_machine', 'golden', 'pipelines' },
    report = { 'report' },
    runs = { 'run_folder', 'seconds', 'rescue', 'callbacks', 'report' },
    search = { 'race', 'callbacks', 'seconds', 'golden', 'rescue', 'run_folder', 'search', 'compare' },
  },
}
