-- Shell for `unshare -m sh -c`, in which $0 is the root of the tree: empty folders in memory over /tmp and others, in which
-- the tree stays where it is although it may lie below one of them.

local mounts = {}

--- Mounts over each folder; goes to the root. Fails where nothing may be mounted.
function mounts.over(folders)
  return ([[cd "$0" && for f in %s; do mount -t tmpfs none $f || exit; done
    [ -d "$0" ] || { mkdir -p "$0" && mount -c --bind /proc/self/cwd "$0"; } || exit
    cd "$0"]]):format(folders)
end

--- Lists what lies in /tmp but for the tree.
mounts.left = [[find /tmp -xdev -mindepth 1 | while read -r path; do case "$0/" in "$path"/*) ;; *) echo "$path" ;; esac; done]]

return mounts
