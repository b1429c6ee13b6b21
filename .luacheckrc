std = 'luajit'
max_line_length = 120
self = false
exclude_files = { 'lib/trinity/_meta' } -- declarations for editors
ignore = { '581', '582' } -- `not (x > y)` is how NaN is refused
files['tests/lua'] = { max_line_length = 160, globals = { 'describe', 'it', 'expect', 'skip', 'shared', 'run_trinity', 'run_script', 'file_with',
  'temporary', 'program', 'output_of', 'root' } }
