/* Stand for what you call: a provider of payments, and one of mail. */
export const sent = [];
let calls = 0;

export async function charge(merchant, amount) {
  calls++;
  if (amount <= 0) return { status: 402 };
  return calls === 3 ? { status: 429, retryAfter: '20s' } : { status: 200 };
}

export async function mail(text) {
  sent.push(text);
}
