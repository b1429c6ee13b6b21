return { rows = {}, values = {} }
