-- The options that were given on the command line, by the table that trinity.options returned: { NAME = true }.

return setmetatable({}, { __mode = 'k' })
