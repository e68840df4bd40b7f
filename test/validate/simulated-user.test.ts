import { expect, test } from 'vitest';
import { openSimulatedUser } from '../../src/validate/simulated-user.ts';
import { scriptedJudge } from './scripted-judge.ts';

const signal = new AbortController().signal;
const turn = (action: string, text: string) => JSON.stringify({ thought: 'hm', action, text });

function user(...answers: string[]) {
  const { ask, requests } = scriptedJudge(...answers);
  return {
    requests,
    played: openSimulatedUser({ goal: 'a blue door', prompt: 'You are terse.', chat: ask }),
  };
}

const transcript = [
  { from: 'user', text: 'Paint the door.' },
  { from: 'harness', text: 'Painted it red. Tell me that you are satisfied.' },
] as const;

test('a simulated user says what they make of the last answer, knowing goal, character and the whole conversation', async () => {
  const { played, requests } = user(turn('say', 'Blue!'));
  expect(await played.next(transcript, signal)).toEqual({ says: 'Blue!' });
  const [request] = requests;
  expect(request?.system).toContain('a blue door');
  expect(request?.system).toContain('You are terse.');
  expect(request?.messages).toMatchObject([
    { from: 'user' },
    { from: 'model', text: expect.stringContaining('Paint the door.') },
    { from: 'user', text: 'Painted it red. Tell me that you are satisfied.' },
  ]);
});

test.each([
  ['satisfied', 'satisfied'],
  ['give-up', 'gave-up'],
])('a simulated user ends the conversation: %s', async (action, ends) => {
  const { played } = user(turn(action, 'it is blue'));
  expect(await played.next(transcript, signal)).toEqual({ ends, why: 'it is blue' });
});

test('a simulated user with nothing to say gives up rather than send silence', async () => {
  const { played } = user(turn('say', ' '));
  expect(await played.next(transcript, signal)).toMatchObject({ ends: 'gave-up' });
});

test('a simulated user whose model answers in another form is asked once more, and then is an error', async () => {
  expect(await user('Blue!', turn('say', 'Blue!')).played.next(transcript, signal)).toEqual({
    says: 'Blue!',
  });
  await expect(user('Blue!').played.next(transcript, signal)).rejects.toMatchObject({ code: 'ANSWER_FORM' });
});
