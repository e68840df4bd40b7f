import type { z } from 'zod';
import type {
  PromoteRequest,
  PromoteResponse,
  Prompt,
  PromptRequest,
  WritePromptRequest,
} from '../../contract/catalog.ts';
import { defaultChannel } from '../../contract/catalog.ts';
import { refuse } from '../api-error.ts';
import type { Call } from './call.ts';

/**
 * A given version, or the one that a channel points to: the default channel if none is named. As long as a
 * prompt has no channel, nobody has decided anything, and its newest version counts.
 */
export function getPrompt(
  { stores, principal }: Call,
  { id, version, channel }: z.output<typeof PromptRequest>,
): Prompt {
  const organization = principal.organizationKey;
  const channels = stores.prompts.channels(organization, id);
  const pointing = channel ?? (version === undefined && channels.size > 0 ? defaultChannel : undefined);
  const wanted = pointing === undefined ? version : channels.get(pointing);
  const prompt =
    pointing !== undefined && wanted === undefined
      ? undefined
      : stores.prompts.find(organization, id, wanted);
  if (prompt) return prompt;
  if (version !== undefined) throw refuse(404, noVersion(id, version));
  if (pointing === undefined) throw refuse(404, `The prompt ${id} does not exist.`);
  const named = [...channels.keys()].slice(0, 20).join(', ');
  throw refuse(404, `The prompt ${id} has no channel ${pointing}. Its channels: ${named || 'none'}.`);
}

export function writePrompt(
  { stores, principal, now }: Call,
  { id, content }: z.output<typeof WritePromptRequest>,
): Prompt {
  return stores.prompts.append(principal.organizationKey, id, content, now);
}

export function promotePrompt(
  { stores, principal }: Call,
  { id, channel, version }: z.output<typeof PromoteRequest>,
): z.output<typeof PromoteResponse> {
  const organization = principal.organizationKey;
  if (!stores.prompts.find(organization, id, version)) throw refuse(404, noVersion(id, version));
  stores.prompts.point(organization, id, channel, version);
  return { id, channel, version };
}

function noVersion(id: string, version: number): string {
  return `The prompt ${id} does not exist or has no version ${version}.`;
}
