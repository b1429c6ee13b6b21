-- The name by which files of networks know it.
return require 'trinity.graph.layers'
