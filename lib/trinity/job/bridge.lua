-- Megatron-Bridge's YAML.

return require 'trinity.job.declared' 'bridge'
