# Reads `Cargo.toml` and writes sets of its features, so that for any three features there is a set that has the first two and
# lacks the third, unless they turn it on. A pair that needs a third feature fails in such a set, as it would alone, and there
# are far fewer sets than pairs.
#
# Greedy: of fifty random sets, the one with most of such triples. The random numbers are the same in every run.

function chance() {
    seed = (seed * 16807) % 2147483647
    return seed / 2147483647
}

# Adds what the features of the set `on` turn on.
function close_set(on,    i, j) {
    for (i = 1; i <= n; i++)
        for (j = 1; j <= n; j++)
            if (on[i] && (i, j) in turns_on) on[j] = 1
}

# Whether the set `on` has the pair of a key of `missing`, without the third feature.
function shows(on, key,    at) {
    split(key, at, SUBSEP)
    return on[at[1]] && on[at[2]] && !on[at[3]]
}

/^\[/ { in_features = /^\[features\]/ }

in_features && /^[a-z]/ && !/^default / {
    name[++n] = $1
    values[n] = $0
}

END {
    seed = 1
    for (i = 1; i <= n; i++)
        for (j = 1; j <= n; j++)
            if (i != j && index(values[i], "\"" name[j] "\"")) turns_on[i, j]
    for (i = 1; i <= n; i++)
        for (j = i + 1; j <= n; j++)
            for (off = 1; off <= n; off++)
                if (off != i && off != j && !((i, off) in turns_on) && !((j, off) in turns_on)) {
                    missing[i, j, off]
                    left++
                }
    while (left) {
        most = 0
        for (try = 0; try < 50; try++) {
            for (i = 1; i <= n; i++) on[i] = chance() < 0.7
            close_set(on)
            shown = 0
            for (key in missing) shown += shows(on, key)
            if (shown > most) {
                most = shown
                for (i = 1; i <= n; i++) best[i] = on[i]
            }
        }
        if (!most) continue
        set = ""
        for (i = 1; i <= n; i++) if (best[i]) set = set (set == "" ? "" : ",") name[i]
        for (key in missing) if (shows(best, key)) { delete missing[key]; left-- }
        print set
    }
}
