return { runs = {}, values = {} }
