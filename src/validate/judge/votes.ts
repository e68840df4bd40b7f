/** One vote of a judge. */
export interface Vote {
  model: string;
  score?: number;
  choice?: string;
  reason: string;
}

/** The median of the scores. For an even number of scores, the mean of the two in the middle. */
export function median(scores: readonly number[]): number {
  const sorted = scores.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = 0, high = 0] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

/**
 * The word with the most votes. In a tie, the word with the lowest score, or without scores, the one listed
 * last.
 */
export function majority(
  votes: readonly string[],
  choices: readonly { word: string; score?: number }[],
): string {
  const counted = choices.map(({ word, score }, position) => ({
    word,
    votes: votes.filter((vote) => vote === word).length,
    // A tie does not favor the work.
    doubt: score === undefined ? position : -score,
  }));
  return counted.toSorted((a, b) => b.votes - a.votes || b.doubt - a.doubt)[0]?.word ?? '';
}
