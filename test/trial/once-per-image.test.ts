import { expect, test } from 'vitest';
import { OncePerImage } from '../../src/trial/prepare/started-sandbox.ts';

const never = new AbortController().signal;

test('what one caller learns of an image, others wait for and keep', async () => {
  const known = new OncePerImage<string>();
  const first = Promise.withResolvers<string>();
  const both = [known.of('a', never, () => first.promise), known.of('a', never, () => expect.fail())];
  first.resolve('learned');
  expect(await Promise.all(both)).toEqual(['learned', 'learned']);
  expect(await known.of('a', never, () => expect.fail())).toBe('learned');
});

test('a caller learns itself if the one that it waits for is stopped, but not if that one fails', async () => {
  const known = new OncePerImage<string>();
  const stopped = new AbortController();
  const first = Promise.withResolvers<string>();
  const learning = known.of('a', stopped.signal, () => first.promise);
  const waiting = [known.of('a', never, async () => 'again'), known.of('a', never, () => expect.fail())];
  stopped.abort(new Error('stopped'));
  first.reject(stopped.signal.reason);
  await expect(learning).rejects.toThrow('stopped');
  expect(await Promise.all(waiting)).toEqual(['again', 'again']);

  const broken = Promise.withResolvers<string>();
  const all = [known.of('b', never, () => broken.promise), known.of('b', never, () => expect.fail())];
  broken.reject(new Error('broken'));
  for (const one of all) await expect(one).rejects.toThrow('broken');
});
