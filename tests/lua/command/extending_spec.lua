-- The manual's chapter on extending, followed exactly in a copy of the tree. `ninja -C build trinity` there compiles
-- what the chapter changed, with the commands of this build, and links it with the other objects of this build.

local core = require 'trinity.core'
local manual = require 'trinity.command.manual'
local chapters = dofile(root .. '/tests/lua/support/chapters.lua')

local build = program:match '^(.*)/[^/]*$'

-- A substitute for ninja in the copy: SOURCE is this tree, BUILD its build folder, and it runs in the copy. A changed file is
-- compiled with the others of its unit, a new one alone as a neighbour is; its directory's precompiled header is read as text, since
-- it was made of other files.
local rebuild = [=[#!/bin/sh
set -eu
commands=$(SOURCE_NINJA -C 'BUILD' -t commands trinity)
objects= replaced= copy=$PWD
export CCACHE_BASEDIR="$copy" CCACHE_NOHASHDIR=1 # a copy elsewhere is found in the cache
for file in $(find engine -name '*.cpp'); do
  cmp -s "$file" "SOURCE/$file" && continue
  neighbour=$(ls "SOURCE/${file%/*}"/*.cpp | head -1)
  [ -e "SOURCE/$file" ] && neighbour=SOURCE/$file
  unit=$(grep -lF "\"$neighbour\"" 'BUILD'/engine/CMakeFiles/*/Unity/*.cxx | head -1)
  unit=${unit:-$neighbour}
  command=$(printf '%s\n' "$commands" | grep -F -e "-c $unit" | head -1)
  [ -n "$command" ] || { echo "no command compiles $unit" >&2; exit 1; }
  name=$(printf '%s' "$file" | tr / _)
  source=$copy/build/$name object=$copy/build/$name.o
  printf '#include "%s"\n' "$copy/$file" >"$source"
  if [ "$neighbour" = "SOURCE/$file" ]; then
    sed "s#\"SOURCE/#\"$copy/#" "$unit" >"$source"
    [ "$unit" != "$neighbour" ] || cp "$file" "$source"
    replaced="$replaced -e s#$(printf '%s' "$command" | sed 's/.* -o \([^ ]*\).*/\1/')##"
  fi
  objects="$objects $object"
  [ "$object" -nt "$file" ] && continue
  command=$(printf '%s' "$command" | sed -e "s#-c $unit#-x c++ -c $source#" -e "s#-o [^ ]*#-o $object#" \
    -e 's#-M[TF] [^ ]*##g' -e 's#-MD##' -e 's#-Winvalid-pch##' \
    -e "s#-include [^ ]*#-include $copy/engine/base/precompiled.h#" -e "s# -I# -I$copy/engine -I#")
  eval "$command -O0"
done
link=$(printf '%s\n' "$commands" | sed -n 's#^\(.* -o \)libtrinity\.so\.[^ ]* \(.*\)$#\1LIBRARY \2#p' |
  sed $replaced -e "s#LIBRARY#$copy/build/$(readlink 'BUILD/libtrinity.so.0') $objects#")
(cd 'BUILD' && eval "$link")
]=]

--- A copy of the tree in which ./ninja comes before ninja.
local function copy_of_tree()
  local folder = temporary '.tree'
  local function filled(text)
    return (text:gsub('SOURCE_NINJA', output_of('command -v ninja'):match '[^\n]*' or 'ninja'):gsub('SOURCE', root):gsub('BUILD', build))
  end
  os.execute(("mkdir -p '%s/build' '%s/.bin' && cp -rp '%s'/engine '%s'/lib '%s'/models '%s'/scripts '%s'/tests '%s' && "
    .. "cp -P '%s' '%s'/lib*.so* '%s/build/'"):format(folder, folder, root, root, root, root, root, folder, program, build, folder))
  core.write_file(folder .. '/.bin/ninja', filled(rebuild))
  os.execute(("chmod +x '%s/.bin/ninja'"):format(folder))
  return folder
end

describe('the chapter on extending', function()
  it('adds what it says it adds', function()
    local folder = copy_of_tree()
    local ok, ran, lacked = pcall(chapters.run, manual.source 'extending', folder, ("PATH='%s/.bin:'$PATH"):format(folder))
    if not ok then error('extending, ' .. tostring(ran), 0) end
    expect(19):below(ran + #lacked)
    if #lacked > 0 then skip('what needs a build did not run: no ' .. lacked[1]) end
  end)
end)
