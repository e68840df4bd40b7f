import type { Stops } from '../../translation/stops.ts';

/** Why a response is incomplete. */
export const stops: Stops = { max_output_tokens: 'length', content_filter: 'refused' };
