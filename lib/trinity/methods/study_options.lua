-- Options of networks as studies and training of learned methods have them (`trinity train`, the studies of chapters
-- moves, ranking and searching): attention in single operators, so that there is more to place.

local apart = { kernels = 'onnx', fused = true, optimizer = 'momentum' }

return { gpt2 = apart, vit_b16 = apart, moe_transformer = apart,
  bert_base = { kernels = 'onnx', optimizer = 'momentum' } }
