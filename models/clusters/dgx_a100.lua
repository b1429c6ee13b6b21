-- dgx_a100xN: N NVIDIA DGX A100 (8 x A100 40 GB). Source: data sheet "NVIDIA DGX A100": six NVSwitches
-- join all GPUs with 12 NVLinks each, without blocking; eight single-port ConnectX-6 NICs for HDR
-- InfiniBand, here one per GPU. The fabric between machines is assumed to be non-blocking (a fat
-- tree), as in the DGX SuperPOD.

return require('trinity.cluster.nodes').machines 'dgx_a100'
