-- Which options a command line gave, by the values that trinity.options returned for it: { NAME = true }.

return setmetatable({}, { __mode = 'k' })
