import { type TestUpstream, testUpstream } from '../../gateway/test-upstream.ts';

/**
 * A model of openai-chat that streams `tokens` tokens in `ms` milliseconds, of `slots` requests at a time.
 * The others wait, as at llama.cpp. With more than `limit` requests there, it answers 429.
 */
export async function slowModel({
  slots,
  limit = Number.POSITIVE_INFINITY,
  tokens = 8,
  ms = 80,
}: {
  slots: number;
  limit?: number;
  tokens?: number;
  ms?: number;
}): Promise<TestUpstream & { most(): number }> {
  let there = 0;
  let most = 0;
  let free = slots;
  const waiting: (() => void)[] = [];
  const server = await testUpstream(async (response) => {
    if (there >= limit) {
      const error = { message: 'Too many requests', type: 'rate_limit_error' };
      response.writeHead(429, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
      return;
    }
    there += 1;
    most = Math.max(most, there);
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (data: unknown) => response.write(`data: ${JSON.stringify(data)}\n\n`);
    for (let token = 0; token < tokens; token += 1) {
      await new Promise((resolve) => setTimeout(resolve, ms / tokens));
      send({ id: 'c', model: 'm', choices: [{ index: 0, delta: { content: `word${token} ` } }] });
    }
    send({ id: 'c', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    const usage = { prompt_tokens: 100, completion_tokens: tokens, total_tokens: 100 + tokens };
    send({ id: 'c', model: 'm', choices: [], usage });
    there -= 1;
    const next = waiting.shift();
    if (next) next();
    else free += 1;
    response.end('data: [DONE]\n\n');
  });
  return { ...server, most: () => most };
}
