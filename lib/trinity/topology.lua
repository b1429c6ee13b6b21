-- The name by which files of clusters know it.
return require 'trinity.cluster.topology'
