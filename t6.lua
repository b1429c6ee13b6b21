local trinity=require 'trinity'
local core=require 'trinity.core'
local mixture = dofile(core.home .. '/tests/lua/support/mixture.lua')
local about = { layers = 2, hidden = 1024, heads = 8, key_heads = 4, feed_forward = 2048, experts = 16, top_k = 2,
  vocabulary = 960, batch_size = 2, sequence = 1024 }
local c=trinity.cluster 'dgx_h100x1'
local p=trinity.problem{graph=mixture(about):to_training { optimizer = 'adam' }, cluster=c}
for _, e in ipairs{1,2,4,8} do
local s=p:strategy{mesh={data=8,expert=e}, micro_batches=2}
for _, o in ipairs{ {load='uniform'}, {load={zipf=0.5}}, {load={zipf=1.2}}, {load={zipf=1.2},place='by_load'}, {load={zipf=1.2},capacity_factor=1.25},{load=function(_, e) return e==1 and 1 or 0 end} } do
local t=trinity.clock_s()
local f=trinity.expert_load(s,o)
print(e, f.step_time_s, f.slowdown, f.step_time_s==s.metrics.step_time_s, f.rank_factor, f.expert_factor, f.dropped, f.peak_memory_bytes, s.metrics.peak_memory_bytes, f.fullest_device, trinity.clock_s()-t)
end end
