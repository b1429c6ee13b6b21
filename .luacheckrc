std = 'luajit'
max_line_length = 120
self = false
exclude_files = { 'lib/trinity/_meta' } -- declarations for editors
ignore = { '581', '582' } -- `not (x > y)` is how NaN is refused
files['tests/lua'] = { max_line_length = 160, globals = { 'describe', 'it', 'it_all', 'all_only', 'draws', 'law_seed', 'it_shared',
  'it_golden', 'expect', 'skip', 'shared', 'root', 'program',
  'run_trinity', 'trinity_says', 'script_says', 'run_script', 'output_of', 'with_torch', 'library_methods', 'temporary', 'file_with', 'merged' } }
