import type { z } from 'zod';
import type {
  PromoteRequest,
  PromoteResponse,
  Prompt,
  PromptRequest,
  WritePromptRequest,
} from '../../contract/catalog.ts';
import { refuse } from '../api-error.ts';
import type { Call } from './call.ts';

export function getPrompt(
  { stores, principal }: Call,
  { id, version, channel }: z.output<typeof PromptRequest>,
): Prompt {
  const organization = principal.organizationKey;
  const pointed = channel && stores.prompts.channelVersion(organization, id, channel);
  if (channel && !pointed) throw refuse(404, `The prompt ${id} does not exist or has no channel ${channel}.`);
  const prompt = stores.prompts.find(organization, id, pointed || version);
  if (prompt) return prompt;
  throw refuse(404, version ? noVersion(id, version) : `The prompt ${id} does not exist.`);
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
