-- Who listens to searches (search/init.lua): the run that keeps them (runs/search.lua). Where nobody
-- does, nothing is kept.

local events = {}

local listener = { attach = function() return nil, function() end end, rescue = function() end }

--- From now on `given` is told: given.attach and given.rescue are what begin and rescue below call.
function events.listen(given) listener = given end

--- A search begins: the record of it, whose step(search) and learned(fields) are told of every step, or nil, and a
--- function(search, found, failure) that ends it.
function events.begin(method, problem, options) return listener.attach(method, problem, options) end

--- A search failed, and `text` is its best so far as JSON: the path where it is kept, or nil.
function events.rescue(search, text) return listener.rescue(search, text) end

return events
