-- Installation by packages: Debian's (cpack), the rock. With TRINITY_DEBIAN='trixie FOLDER' (or bookworm) the former
-- are built in a tree of that release and installed in a bare one, which takes an hour, root and the network.

all_only()

local build = program:match '^(.*)/[^/]*$'
local folder = os.tmpname()
os.remove(folder)

local function has(command) return output_of('command -v ' .. command) ~= '' end

local function succeeds(command)
  local text, status = output_of(('unset TRINITY_HOME LUA_PATH LUA_CPATH; (%s) 2>&1; echo "status=$?"'):format(command))
    :match '^(.*)status=(%d+)\n$'
  if status ~= '0' then error(('%s\nstatus %s:\n%s'):format(command, status, text), 2) end
  return text
end

describe('packages', function()
  it('of Debian hold a program that works from anywhere, and LibTorch apart', function()
    for _, needed in ipairs { 'cpack', 'dpkg-deb', 'dpkg-shlibdeps', 'file' } do
      if not has(needed) then skip('no ' .. needed .. ' here') end
    end
    if not require('trinity.base.util').exists(build .. '/CPackConfig.cmake') then skip 'no CPackConfig.cmake' end
    succeeds(("cpack -G DEB --config '%s/CPackConfig.cmake' -B '%s/deb'"):format(build, folder))
    local depends = succeeds(("dpkg-deb -f '%s'/deb/trinity_*.deb Depends"):format(folder))
    expect(depends):matches 'libluajit'
    expect(depends:find 'libtorch'):equals(nil)
    succeeds(("dpkg-deb -x '%s'/deb/trinity_*.deb '%s/tree' && chmod -R a-w,a+rX '%s/tree' && chmod a+rx '%s'"):format(folder,
      folder, folder, folder))
    local as = output_of 'id -u' == '0\n' and has 'runuser' and 'runuser -u nobody -- ' or ''
    expect(succeeds(("cd / && %s'%s/tree/usr/bin/trinity' simulate --model vgg16 --run none"):format(as, folder)))
      :matches 'step time'
    expect(output_of(("cd / && unset TRINITY_HOME && '%s/tree/usr/bin/trinity' study 2>&1; find '%s/tree' -path '*scripts/studies*'"):format(
      folder, folder))):matches '/scripts/studies: expected the studies of the source tree, got no directory; use a checkout of trinity\n$'
    expect(output_of(("cd / && unset TRINITY_HOME && %s'%s/tree/usr/bin/trinity' help --check 2>&1"):format(as, folder)))
      :matches 'program     trinity [%d.]+, without LibTorch\n.*wrong: program: jobs of several processes need LibTorch'
    for _, path in ipairs { 'man/man1/trinity.1', 'bash-completion/completions/trinity' } do
      expect(#require('trinity.core').read_file(('%s/tree/usr/share/%s'):format(folder, path)) > 1000):equals(true)
    end
    if has 'luajit' then
      local path = succeeds(("find '%s/tree/usr/lib' -name core.so"):format(folder)):match '^(.*)/trinity/core.so'
      expect(succeeds(("cd / && LUA_PATH='%s/tree/usr/share/lua/5.1/?.lua;%s/tree/usr/share/lua/5.1/?/init.lua' "
        .. "LUA_CPATH='%s/?.so' luajit -e 'print(require(\"trinity\").system.api)'"):format(folder, folder, path))):matches '^%d+\n$'
    end
    local torch = output_of(("ls '%s'/deb/trinity-torch_*.deb 2>/dev/null"):format(folder)):match '[^\n]+'
    if torch then
      expect(succeeds(("dpkg-deb -f '%s' Depends"):format(torch))):matches 'trinity %(= '
      expect(succeeds(("dpkg-deb -c '%s'"):format(torch))):matches 'libtrinity_torch%.so'
    end
  end)
  it('of a release of Debian install in a bare tree, and work from a read-only /usr', function()
    local words = os.getenv 'TRINITY_DEBIAN'
    if not words then skip "TRINITY_DEBIAN='trixie FOLDER' builds and tries them in an hour, with root and the network" end
    local said = succeeds(("cd '%s' && sh scripts/package/debian %s"):format(root, words))
    expect(said):matches '\n%d[%d.]*, /tmp/trinity_%S+: it works\n'
    expect(said):matches '\n%d[%d.]*, /tmp/trinity_%S+ /tmp/trinity%-torch_%S+: it works\n'
  end)
  it('of LuaRocks give a module that a stock luajit finds', function()
    if not has 'luajit' or not has 'cmake' then skip 'needs luajit and cmake' end
    succeeds(("cd '%s' && sh scripts/package/rock install '%s/rock' '%s/rock/lua' '%s'"):format(root, folder, folder, build))
    expect(succeeds(("cd / && LUA_PATH='%s/rock/lua/?.lua' luajit -e 'local t = require \"trinity\" print(t.model(\"vgg16\", { batch_size = 1 }))'")
      :format(folder))):matches '^graph vgg16: 98 operators'
    expect(succeeds(("cd '%s' && luajit -e 'dofile \"scripts/package/trinity-0.1.0-1.rockspec\" print(package)'"):format(root)))
      :equals 'trinity\n'
  end)
  it('have scripts that shells understand', function()
    for _, name in ipairs { 'deb', 'debian', 'rock', 'try' } do
      expect(succeeds(("sh -n '%s/scripts/package/%s'"):format(root, name))):equals ''
    end
  end)
  it('leave nothing after removal', function()
    expect(succeeds(("chmod -R u+w '%s'; rm -rf '%s'"):format(folder, folder))):equals ''
  end)
end)
