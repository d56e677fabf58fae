def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()
