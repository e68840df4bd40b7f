import type { Stops } from '../../translation/stops.ts';

export const stops: Stops = {
  end_turn: 'done',
  tool_use: 'tools',
  max_tokens: 'length',
  stop_sequence: 'sequence',
  refusal: 'refused',
  model_context_window_exceeded: 'context',
};
