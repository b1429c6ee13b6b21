-- The tutorial in README.md runs as it is printed there, all blocks in one state.

describe('the tutorial of README.md', function()
  it('runs block after block', function()
    local chapter = require('trinity.core').read_file(root .. '/README.md'):match '\n## Tutorial.-\n(.-)\n## '
    local blocks = {}
    for block in chapter:gmatch '```lua\n(.-)```' do blocks[#blocks + 1] = block end
    expect(#blocks):equals(6)
    local status, output = run_script('SCRIPT', table.concat(blocks, '\n'))
    if status ~= 0 then error(output) end
    expect(output):matches 'graph inception_v3'
    expect(output):matches '\nin_order[ *]+[%d.]+ s'
    expect(output):matches '\ntrinity: step'
    expect(output):matches '\nppo: step'
    expect(output):matches '\n%-?[%d.]+\t%-?[%d.]+\t%-?[%d.]+\n'
  end)
end)
