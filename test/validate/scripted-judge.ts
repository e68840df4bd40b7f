import type { ChatAnswer, ChatRequest } from '../../src/gateway/chat/chat.ts';
import type { AskModel } from '../../src/validate/judge/judge.ts';

/**
 * A model that gives what it is told to, one answer a request, and keeps the requests. An error is thrown.
 */
export function scriptedJudge(...answers: (string | Error | Partial<ChatAnswer>)[]): {
  ask: AskModel;
  requests: ChatRequest[];
} {
  const requests: ChatRequest[] = [];
  return {
    requests,
    async ask(request) {
      requests.push(request);
      const answer = answers[Math.min(requests.length, answers.length) - 1] ?? '';
      if (answer instanceof Error) throw answer;
      const given = typeof answer === 'string' ? { text: answer } : answer;
      return { text: '', calls: [], stopped: 'done', usage: {}, model: 'scripted-1', ...given };
    },
  };
}

export const scored = (score: number, reason = 'because') => JSON.stringify({ reason, score });
export const chosen = (choice: string, reason = 'because') => JSON.stringify({ reason, choice });
