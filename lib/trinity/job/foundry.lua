-- LLM Foundry's YAML.

return require 'trinity.job.declared' 'foundry'
