-- nanotron's YAML.

return require 'trinity.job.declared' 'nanotron'
