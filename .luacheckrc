std = 'luajit'
max_line_length = 110
self = false
ignore = { '581', '582' } -- `not (x > y)` is how NaN is refused
files['tests/lua'] = { globals = { 'describe', 'it', 'expect', 'skip', 'shared', 'run_trinity', 'root' } }
