rockspec_format = '3.0'
package = 'trinity'
version = '0.1.0-1'
-- From a checkout: luarocks --lua-version 5.1 make scripts/package/trinity-0.1.0-1.rockspec
source = { url = 'git+file://.' }
description = {
  summary = 'A laboratory for parallel-training strategies',
  detailed = 'Graphs, a simulator, searches, policies and an executor for LuaJIT; needs what scripts/bootstrap installs.',
}
dependencies = { 'lua == 5.1' }
build = {
  type = 'command',
  build_command = 'sh scripts/package/rock build',
  install_command = 'sh scripts/package/rock install "$(PREFIX)" "$(LUADIR)"',
}
