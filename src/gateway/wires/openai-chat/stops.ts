import type { Stops } from '../../translation/stops.ts';

export const stops: Stops = {
  stop: 'done',
  eos: 'done',
  tool_calls: 'tools',
  function_call: 'tools',
  length: 'length',
  content_filter: 'refused',
};
