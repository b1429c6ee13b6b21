-- The plotting library of a page: Vega, from the modules of Debian's libjs-vega in the order of their dependencies.
-- They are AMD modules, so a `define` of a few lines joins them; page.js finds them in `vegaModules`. Expressions are
-- interpreted (vega-interpreter), so that the page can forbid `eval`.

local core = require 'trinity.core'

local vega = {}

local folder = '/usr/share/javascript/vega'

local modules = { 'util', 'time', 'format', 'loader', 'statistics', 'expression', 'event-selector', 'dataflow',
  'canvas', 'scale', 'scenegraph', 'selection', 'functions', 'runtime', 'parser', 'view', 'transforms',
  'view-transforms', 'encode', 'interpreter' }

-- Name of the file, and name by which others require it.
local asked_for = { selection = 'selections' }

local join = [[
/* Vega (https://vega.github.io), modules of libjs-vega. Copyright 2015-2021 UW Interactive Data Lab, BSD 3-Clause;
   parts of d3 (ISC, Copyright Mike Bostock), Esprima (BSD 2-Clause). See the package's copyright file. */
var vegaModules = {}, vegaModule = '';
function define(needs, body) {
  var own = {};
  body.apply(null, needs.map(function (name) { return name === 'exports' ? own : vegaModules[name]; }));
  vegaModules[vegaModule] = own;
}
define.amd = {};
]]

function vega.text()
  local parts = { join }
  for _, name in ipairs(modules) do
    local path = ('%s/vega-%s.min.js'):format(folder, name)
    local ok, text = pcall(core.read_file, path)
    if not ok then
      return nil, 'charts need Vega: install libjs-vega (scripts/bootstrap does) and make the report again'
    end
    text = text:gsub('\n//# sourceMappingURL[^\n]*', ''):gsub('</([sS][cC][rR][iI][pP][tT])', '<\\/%1')
    parts[#parts + 1] = ("vegaModule = 'vega-%s';\n%s\n"):format(asked_for[name] or name, text)
  end
  return table.concat(parts)
end

return vega
