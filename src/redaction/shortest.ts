/**
 * The shortest value that Offsite looks for, in characters. A shorter one would match everywhere, and is not
 * a secret (`ollama`, `EMPTY`, `lm-studio`). The limit is higher if a false match costs more.
 */
export const shortest = {
  /** For what is kept, printed and reported: a false match removes a word. */
  kept: 6,
  /** For requests: a false match refuses the request. */
  refused: 8,
  /** For a model's answers: a false match changes words that an agent reads. */
  answered: 12,
};
