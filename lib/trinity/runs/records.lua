-- Records of searches in run folders (lib/trinity/runs/search.lua), by search. They are not fields of the search,
-- because the body of a search may be untrusted.

return setmetatable({}, { __mode = 'k' })
