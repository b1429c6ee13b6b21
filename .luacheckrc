std = 'luajit'
max_line_length = 110
self = false
files['tests/lua'] = { globals = { 'describe', 'it', 'expect' } }
