-- What a run's folder keeps of each search (lib/trinity/runs/search.lua), by search: beside it, not in it, as the body
-- of a search may be a stranger's.

return setmetatable({}, { __mode = 'k' })
