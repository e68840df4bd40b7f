import assert from 'node:assert/strict';
import { validate } from 'offsite/validator';

validate('a good reply', async ({ read, answer, judge, metadata }) => {
  const material = { 'reply.txt': await read('reply.txt') };
  metadata({ promise: await answer({ prompt: 'What does the reply promise?', material, temperature: 0 }) });
  await judge({
    rubric: 'A customer whose parcel is late reads this. It takes them seriously and says what happens next.',
    material,
    threshold: 0.7,
    votes: 3,
    seed: 1,
  });
});

validate('its tone', async ({ read, judge }) => {
  const { choice } = await judge({
    rubric: 'The tone of the reply.',
    material: await read('reply.txt'),
    choices: ['friendly', 'neutral', 'rude'],
  });
  assert.notEqual(choice, 'rude');
});
