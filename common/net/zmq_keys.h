// Key pairs of CURVE, the encryption of ZeroMQ's sockets (rfc.zeromq.org/spec:26/CURVEZMQ). The
// handshake proves that a peer holds the secret key of a pair without sending it.
#pragma once

#include <string>

namespace dt {

// Each key is 32 bytes, here as 40 characters of Z85 (rfc.zeromq.org/spec:32/Z85).
struct KeyPair {
  std::string public_key;
  std::string secret_key;  // Empty if only the public key is known.
};

// A new pair from the system's random numbers. Any thread.
KeyPair MakeKeyPair();
// Whether the text has the form of a key.
bool IsKey(const std::string& text);
// The public key that belongs to the secret. REQUIRES: IsKey(secret_key).
std::string PublicKeyOf(const std::string& secret_key);

}  // namespace dt
