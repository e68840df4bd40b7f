/** What one judge says. */
export interface Vote {
  model: string;
  score?: number;
  choice?: string;
  reason: string;
}

/** The median of the scores; of an even number, the mean of the two in the middle. */
export function median(scores: readonly number[]): number {
  const sorted = scores.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = 0, high = 0] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

/**
 * The word most votes chose. Of words chosen equally often, the one with the lowest score, else the one named
 * last.
 */
export function majority(
  votes: readonly string[],
  choices: readonly { word: string; score?: number }[],
): string {
  const counted = choices.map(({ word, score }, position) => ({
    word,
    votes: votes.filter((vote) => vote === word).length,
    // Doubt is not decided for the work.
    doubt: score === undefined ? position : -score,
  }));
  return counted.toSorted((a, b) => b.votes - a.votes || b.doubt - a.doubt)[0]?.word ?? '';
}
