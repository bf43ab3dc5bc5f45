import opinionsim as osim


@osim.part("selector")
def most_words(texts, least=1):
    """The reply with the most words of at least `least` letters."""
    counts = [sum(len(word) >= least for word in text.split()) for text in texts]
    return counts.index(max(counts))
