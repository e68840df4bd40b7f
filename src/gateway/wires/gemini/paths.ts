import type { PathTarget } from '../wire-descriptor.ts';

/** Reads `/models/NAME:generateContent`, as a path below the base URL. */
export function targetOf(path: string): PathTarget | undefined {
  const [, model, verb] = /^\/models\/([^?#]+):(\w+)$/.exec(path) ?? [];
  if (model === undefined) return undefined;
  if (verb === 'generateContent') return { model, purpose: 'answer', streamed: false };
  if (verb === 'streamGenerateContent') return { model, purpose: 'answer', streamed: true };
  return verb === 'countTokens' ? { model, purpose: 'count', streamed: false } : undefined;
}

/** The stream as server-sent events; without `alt` it would be a JSON list. */
export const streamQuery = 'alt=sse';

export function answerPath(model: string, streamed: boolean): string {
  return streamed
    ? `/models/${inPath(model)}:streamGenerateContent?${streamQuery}`
    : `/models/${inPath(model)}:generateContent`;
}

export function countPath(model: string): string {
  return `/models/${inPath(model)}:countTokens`;
}

/** Names of models may have slashes, which are parts of the path. */
function inPath(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/');
}
