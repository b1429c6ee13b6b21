-- Pages of studies (scripts/studies/NAME): their blocks run as they are printed, and the tables of fidelity are what its
-- comparisons print of the tables of others.

local chapters = dofile(root .. '/tests/lua/support/chapters.lua')
local core = require 'trinity.core'

describe('the page', function()
  for _, study in ipairs(core.list_folder(root .. '/scripts/studies')) do
    local folder = 'scripts/studies/' .. study
    for _, file in ipairs(study:find('.', 1, true) and {} or core.list_folder(('%s/%s'):format(root, folder))) do
      local try = file == 'pase.md' and it or it_all
      if file:find '%.md$' and file ~= 'README.md' then
        try(('%s/%s does what it says'):format(study, file), function()
          local source = core.read_file(('%s/%s/%s'):format(root, folder, file))
          expect(chapters.run(source, chapters.folder(temporary '.page', root, program)) >= 0):truthy()
        end)
      end
    end
  end
end)

describe('results of fidelity', function()
  it_golden('studies/results/errors', function()
    return output_of(("cd '%s' && '%s' study fidelity errors"):format(root, program))
  end, 'scripts/studies/fidelity/results/errors.txt')
  all_only()
  for _, words in ipairs { 'kernels', 'collectives', 'golden', 'plan', 'published', 'sailor', 'vtrain',
    'published --rows scripts/studies/fidelity/recipes.csv' } do
    local name = words:match '(%l+)%.csv$' or words
    local path = ('scripts/studies/fidelity/results/%s.txt'):format(name)
    it_golden('studies/results/' .. name, function()
      if not core.exists(shared 'vtrain/multi.csv') then skip '../shared is not here' end
      return (output_of(("cd '%s' && '%s' study fidelity %s 2>/dev/null"):format(root, program, words))
        :gsub('\nmade by:[^\n]*', ''))
    end, path)
  end
end)
