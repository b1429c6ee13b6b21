-- Methods whose results other versions of LibTorch, METIS or SCOTCH may change: golden texts mask them.

local varies = {}
for _, name in ipairs { 'trinity', 'hierarchical', 'post', 'colocrl', 'placeto', 'doppler', 'my_policy', 'tapp', 'tapp_moves',
  'metis', 'scotch' } do varies[name] = true end
return varies
