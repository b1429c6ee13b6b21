---@meta _
-- Options that functions of lib/trinity/graph take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.BackwardEdges 'free'|'counted'|'forbidden'
---@alias trinity.CollectiveAlgorithm 'automatic'|'ring'|'halving_doubling'|'tree'|'hierarchical'|'leader'|'multicast'|'in_network'
---@alias trinity.Colocate 'forward'|'parameters'
---@alias trinity.Kernels 'onnx'|'megatron'|'flash'
---@alias trinity.Optimizer 'sgd'|'momentum'|'adam'

--- Of attention and the blocks around it; see the methods for which they take and need.
---@class trinity.AttentionOptions
---@field heads? integer of queries; needed but for feed_forward (1 or more)
---@field key_heads? integer heads of keys and values (default: heads; 1 or more)
---@field head_width? integer of queries and keys (default: the width over the heads; 1 or more)
---@field mask? trinity.Tensor added to the scores
---@field dropout? number of shares and results (default 0; 0 to 1)
---@field causal? boolean no position sees later ones (default false)
---@field window? integer nearest positions that one sees (default: all; 1 or more)
---@field softcap? boolean scores are bounded by a tanh (default false)
---@field bias? boolean of the projections (default true)
---@field output_bias? boolean of the projection behind attention (default: bias)
---@field head_norm? boolean queries and keys are normalised head by head (default false)
---@field fused? boolean one product for queries, keys and values (default false)
---@field rotary? trinity.Tensor[] tables of cosines and sines
---@field feed_forward? integer width between the two linear layers (1 or more)
---@field approximate? string of the GELU (default 'none')
---@field norm_first? boolean normalise before the sublayers (default false)
---@field epsilon? number of the normalisations (default 1e-5; 0 or more)
---@field kernels? trinity.Kernels what is one operator, and kept: as ONNX has it; as Megatron-LM; that with one operator of attention (default 'onnx')
---@field fused_softmax? boolean with kernels = 'megatron': whether scale, mask and softmax are one kernel (see attention) (default true)

--- What layers:batch_norm takes.
---@class trinity.BatchNormOptions
---@field epsilon? number added to the variance (default 0.001; 0 or more)
---@field scale? boolean whether there is one (default true)
---@field fused? integer 0: without a fused kernel, which graphs of framework granularity show (default 1; 0 to 1)

--- What trinity.cluster takes.
---@class trinity.ClusterOptions
---@field constants? 'calibrated'|'data_sheet'|string|table<string, table<string, number>> what training reaches of the data sheets: fitted, as the sheet says, a file of Lua or a table by kind of GPU (trinity help trust) (default: 'calibrated')
---@field runtime? string|trinity.Runtime the training software, by name or as a table (default: 'megatron')
---@field slow? table<string, number> what is slower than described: { ['n7/gpu3'] = 1.3 } divides the speed of a device, and of an end of links (a NIC, a switch) or a link 'A -> B' the bandwidth (default: none)

--- What graph:min_cut takes.
---@class trinity.CutOptions
---@field capacity? 'bytes'|trinity.DoubleArray|number[]|fun(bytes: number, from: integer, to: integer): number 'bytes': a tensor counts once however many readers it has; else per edge of csr(), math.huge: never cut (default 'bytes')
---@field backward? trinity.BackwardEdges what edges cost that lead back (default 'free')

--- What trinity.model takes of a config.json.
---@class trinity.DecoderOptions: trinity.ModelOptions
---@field batch_size? integer sequences of a step (default 1; 1 to 2147483648)
---@field sequence? integer tokens of each (default: the longest, of at most 4,096; 1 to 2^24)
---@field layers? integer of the network (default: the file's; 1 to 10000)
---@field kernels? 'onnx'|'megatron'|'flash' what is one operator, and so what is kept (default 'flash')
---@field dropout? number ratio of all dropouts (default: the file's; 0 to 1)

--- A picture of a graph.
---@class trinity.DotOptions
---@field units? boolean a node per colocation unit (default false)

--- What layers:embedding takes: rows and features, or a weight.
---@class trinity.EmbeddingLayerOptions
---@field rows? integer how many there are (1 or more)
---@field features? integer width of a row (1 or more)
---@field weight? trinity.Tensor a variable [rows, features] (default: weights of its own)

--- Of a feed-forward network whose values are multiplied by an activation of others (Shazeer 2020).
---@class trinity.GatedOptions
---@field feed_forward integer width between the linear layers (1 or more)
---@field activation? 'silu'|'gelu'|'relu' of the gate (default 'silu')
---@field bias? boolean of the linear layers (default false)
---@field kernels? 'onnx'|'megatron'|'flash' 'onnx': the activation and the product are two operators, which keep four widths; else one, which keeps three (default 'onnx')

--- What graph:critical_path takes.
---@class trinity.GraphPathOptions
---@field time_s trinity.DoubleArray|number[]|fun(i: integer): number seconds of every operator
---@field transfer_s? trinity.DoubleArray|number[]|fun(bytes: number, from: integer, to: integer): number seconds of every edge of csr() (default: none)

--- Of attention whose keys and values come from a vector a position (DeepSeek-V2, 2024, section 2.1).
---@class trinity.LatentAttentionOptions
---@field heads integer of queries, keys and values (1 or more)
---@field latent integer width of that vector (1 or more)
---@field query_latent? integer width of another for queries (default: queries come from x; 1 or more)
---@field plain_width integer of a head's queries and keys: what is not turned (0 or more)
---@field rotary_width integer the rest, which is turned; of keys all heads share it (1 or more)
---@field value_width integer of a head's values (1 or more)
---@field rotary trinity.Tensor[] tables of cosines and sines
---@field bias? boolean of the products of x and of the result (default false)
---@field epsilon? number of the normalisations (default 1e-6; 0 or more)
---@field kernels? 'onnx'|'megatron'|'flash' as of layers:attention (default 'onnx')

--- What layers:linear takes.
---@class trinity.LinearLayerOptions
---@field bias? boolean whether something is added (default true)
---@field weight? trinity.Tensor a variable [features, K] (default: weights of its own)
---@field start? 'plain'|'he' variance of the first weights: 1 / K, or 2 / K (He et al. 2015) (default 'plain')
---@field attributes? table of the operator, beside its own

--- What layers:lrn takes.
---@class trinity.LrnOptions
---@field size integer channels that count (1 to 2147483648)
---@field alpha? number weight of their squares (default 0.0001)
---@field beta? number exponent (default 0.75)
---@field bias? number added to the sum (default 1)

--- What layers:lstm_cell takes: variables that steps share (TensorFlow's BasicLSTMCell).
---@class trinity.LstmCellOptions
---@field weight trinity.Tensor a variable [I + H, 4 H]
---@field bias trinity.Tensor a variable [4 H]

--- What layers:lstm takes.
---@class trinity.LstmLayerOptions
---@field hidden integer H, width of the state (1 or more)
---@field bidirectional? boolean D is 2, else 1 (default false)
---@field time_major? boolean [T, N, I] to [T, D, N, H] and [D, N, H] (default false)

--- What layers:lstm_steps takes.
---@class trinity.LstmStepsOptions
---@field inputs integer width of what comes in (1 or more)
---@field hidden integer width of the state (1 or more)
---@field h? trinity.Tensor the state [N, hidden] before the first step (default: zero, then `batch_size` is needed)
---@field c? trinity.Tensor the cell [N, hidden] before the first step (default: h)
---@field batch_size? integer N of a state that is zero (1 or more)

--- Of a mixture of experts, each a feed-forward network.
---@class trinity.MixtureOptions: trinity.GatedOptions
---@field experts integer of the layer (1 to 65536)
---@field top_k integer experts that a token goes to (1 or more)
---@field router? 'softmax'|'sigmoid' what makes weights of scores (default 'softmax')
---@field normalise? boolean weights of the chosen experts add up to one (default true)
---@field shared? integer width of a network beside the experts, which all tokens pass (default 0; 0 or more)
---@field gated? boolean whether an expert has gates, or is two linear layers with a GELU between them (default true)
---@field apart? boolean without gates: GELU and the weights of rows are two operators with any kernels, as in Megatron-LM (core/transformer/moe/experts.py), whose backward keeps the result of the first (default false)
---@field divisible_by? integer rows of an expert are rounded up to a multiple of it (default 1; 1 or more)

--- What trinity.model takes.
---@class trinity.ModelOptions: trinity.TrainingOptions
---@field training? boolean false: the forward graph alone (default true)
---@field dtype? 'float32'|'float16'|'bfloat16'|'float64'|'float8' of activations and weights (builders only); a config.json's: what it says, or bfloat16; its 'float8': bfloat16, with operands of products in FP8 (default 'float32')
---@field cluster? trinity.Cluster|string where it is trained: gpt2, bert_base, vit_b16 and moe_transformer without a dtype are in bfloat16, with float32 gradients, if all of its devices have that; decoders whose file says no dtype in float16 if they have not
---@field granularity? 'layer'|'framework' 'framework': the operators of a TensorFlow 1.15 graph (default 'layer')
---@field dimensions? table<string, integer> sizes that an ONNX file leaves open, by name
---@field copy_shared_vectors? boolean of ONNX files: a vector read by several operators is copied (exporters merge equal vectors), or one Variable (default true)
---@field weight_decay? boolean of granularity 'framework' (default false)
---@field clip_gradients? boolean of granularity 'framework' (default false)
---@field [string] any options of the model

--- What layers:layer_norm and layers:rms_norm take.
---@class trinity.NormLayerOptions
---@field epsilon? number added to the variance (default 1e-5; 0 or more)

--- What graph:recompute takes.
---@class trinity.RecomputeOptions
---@field segment trinity.Placement|integer[] per operator: those of one number run again together; 0: it is left as it is
---@field eager? boolean a segment may begin before a gradient comes in (default false)

--- What graph:replicate takes.
---@class trinity.ReplicaOptions
---@field replicas integer how many (1 to 2^24)
---@field bucket_bytes? integer gradients that are reduced together (default 2.5e7; 1 to 2^50)
---@field algorithm? trinity.CollectiveAlgorithm of all-reduces (default 'automatic')
---@field placement? trinity.Placement of one replica: gradients of one device share buckets (default: those of one colocation unit share them)

--- What graph:replicate_stages takes.
---@class trinity.StageReplicaOptions
---@field stage trinity.Placement|integer[] per operator
---@field replicas integer[] per stage
---@field bucket_bytes? integer gradients that are reduced together (default 2.5e7; 1 to 2^50)
---@field algorithm? trinity.CollectiveAlgorithm of all-reduces (default 'automatic')
---@field at_share? (trinity.Graph|false)[] per stage the network at a replica's part of the batch (default: costs are divided)

--- What a training step is made by.
---@class trinity.TrainingOptions
---@field colocate? trinity.Colocate which backward operators stay with their forward operator (default 'forward')
---@field optimizer? trinity.Optimizer state per weight (default 'momentum')
---@field gradient_dtype? 'float32'|'float16'|'bfloat16'|'float64' of the gradients of weights (default: that of the weights)

--- Numbers, or { height, width }.
---@class trinity.WindowOptions
---@field kernel integer|integer[] size of the window
---@field stride? integer|integer[] steps of the window (default 1)
---@field padding? integer|integer[]|'same' all sides, { height, width } or four sides (default 0)
---@field group? integer of a convolution (default 1; 1 or more)
---@field ceil? boolean of pooling: a last window may reach over the edge (default false)
---@field include_padding? boolean of average pooling: padding counts (default false)
---@field channels? integer that a convolution gives (1 to 2147483648)
---@field bias? boolean of a convolution (default false)
