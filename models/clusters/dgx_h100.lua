-- dgx_h100xN: N NVIDIA DGX H100 (8 x H100 80 GB). Source: data sheet "NVIDIA DGX H100": four NVSwitches
-- join all GPUs with 18 NVLinks each, without blocking; eight ConnectX-7 for NDR InfiniBand (400 Gbit/s),
-- here one to each GPU. The fabric between machines is taken as free of blocking (a fat tree). For a
-- DGX H200, device type h200.

return require('trinity.cluster.nodes').machines 'dgx_h100'
