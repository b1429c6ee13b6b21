-- How light a start is, beside luajit's, and what planners need beside the peers whose figures ../shared/data records:
--   luajit tests/bench/bench_start.lua [BUILD]
-- Medians of 20 processes one after another, wall time and peak of resident memory as the kernel tells them (wait4). A
-- stock luajit runs this, because a child's peak begins with that of the process that starts it.

local ffi = require 'ffi'
ffi.cdef [[
typedef struct { long seconds, microseconds; } bench_time;
typedef struct { bench_time user, system; long max_rss_kb, others[13]; } bench_usage;
int posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes, const char *const *words,
  char *const *environment);
int wait4(int pid, int *status, int options, bench_usage *usage);
int gettimeofday(bench_time *now, void *zone);
int open(const char *path, int flags);
int dup2(int from, int to);
extern char **environ;
]]

local root = arg[0]:match '^(.*)/tests/bench/' or '.'
local build = arg[1] or root .. '/build'
local program = build .. '/trinity'

local function clock_s()
  local now = ffi.new 'bench_time[1]'
  ffi.C.gettimeofday(now, nil)
  return tonumber(now[0].seconds) + tonumber(now[0].microseconds) * 1e-6
end

--- Runs a program with words, its output thrown away: { wall_s, peak_kb }.
local function run(words)
  local list, pid, status, usage = ffi.new('const char *[?]', #words + 1), ffi.new 'int[1]', ffi.new 'int[1]',
    ffi.new 'bench_usage[1]'
  for i, word in ipairs(words) do list[i - 1] = word end
  local start = clock_s()
  assert(ffi.C.posix_spawnp(pid, words[1], nil, nil, list, ffi.C.environ) == 0, 'cannot start ' .. words[1])
  ffi.C.wait4(pid[0], status, 0, usage)
  assert(status[0] == 0, table.concat(words, ' ') .. ': ended with status ' .. status[0])
  return { wall_s = clock_s() - start, peak_kb = tonumber(usage[0].max_rss_kb) }
end

--- Medians of 20 runs.
local function medians(...)
  local walls, peaks, words = {}, {}, { ... }
  for i = 1, 20 do
    local one = run(words)
    walls[i], peaks[i] = one.wall_s, one.peak_kb
  end
  table.sort(walls)
  table.sort(peaks)
  return (walls[10] + walls[11]) / 2, (peaks[10] + peaks[11]) / 2
end

local function read(path)
  local file = io.open(path)
  local text = file and file:read '*a'
  if file then file:close() end
  return text
end

local shown = ffi.C.dup2(1, 99)
ffi.C.dup2(ffi.C.open('/dev/null', 1), 1) -- what the programs print
local out = io.open('/proc/self/fd/' .. shown, 'w')
local function print_row(...) out:write(('%-44s %9s %9s  %s\n'):format(...)) out:flush() end

print_row('', 'wall_ms', 'peak_MB', '')
local luajit_s, luajit_kb = medians('luajit', '-e', '')
print_row("luajit -e ''", ('%.1f'):format(luajit_s * 1e3), ('%.1f'):format(luajit_kb / 1024), '')
local function row(name, words)
  local wall_s, peak_kb = medians(program, unpack(words))
  print_row(name, ('%.1f'):format(wall_s * 1e3), ('%.1f'):format(peak_kb / 1024),
    ('%.1f x luajit'):format(wall_s / luajit_s))
  return wall_s, peak_kb
end
local _, empty_kb = row("trinity -e ''", { '-e', '' })
row("trinity -e 'require \"trinity\"'", { '-e', 'require "trinity"' })
row('trinity help', { 'help' })
row('trinity simulate --model alexnet', { 'simulate', '--model', 'alexnet', '--run', 'none' })
row('trinity -e, with LibTorch', { '-e', 'local _ = require "trinity.core".tensor' })

local pase = read(root .. '/../shared/data/pase/expected.json')
if not pase then print_row('rows of ../shared/data: not here', '', '', '') return end
for case, wall_s in pase:gmatch '"case":"pase%-([^"]+)".-"wall_s":([%d.]+)' do
  local file = ('%s/../shared/data/pase/%s.json.gz'):format(root, case)
  local took_s, peak_kb = medians(program, 'select', file, '--run', 'none')
  print_row('select ' .. case, ('%.1f'):format(took_s * 1e3), ('%.1f'):format(peak_kb / 1024),
    ('1/%.0f of the reference'):format(wall_s / took_s))
end
local placed = root .. '/../shared/data/dnn-partitioning/'
local throughput = read(placed .. 'expected.json'):match '"throughput": (.-)"latency": '
for case, rss_kb in throughput:gmatch '"(%w+Graphs/[^"]+)": {[^{}]*"peer_dp": {[^{}]*"rss_kb": (%d+)' do
  local file = ('%sthroughput-inputs/%s.json'):format(placed, case)
  local one = run { program, 'pipeline', file, '--method', 'max_load_dp', '--run', 'none' }
  print_row('max_load_dp ' .. case, ('%.1f'):format(one.wall_s * 1e3), ('%.1f'):format(one.peak_kb / 1024),
    ("peak above the start's %.2f x the peer's"):format((one.peak_kb - empty_kb) / rss_kb))
end
