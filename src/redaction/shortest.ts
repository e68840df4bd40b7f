/**
 * Characters below which a value is not looked for: it would be found everywhere, and is no secret (`ollama`,
 * `EMPTY`, `lm-studio`). The more a wrong find costs, the more it takes.
 */
export const shortest = {
  /** What is kept, printed and reported: a word too much is taken out. */
  kept: 6,
  /** What is asked for: it is refused. */
  refused: 8,
  /** What a model answers: its words are changed under an agent's hands. */
  answered: 12,
};
